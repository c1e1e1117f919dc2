import base64
import random
import string

import pytest

from endless_mode.privacy import clean, clean_value

ALNUM = string.ascii_letters + string.digits
DRAW = random.Random(20)


def drawn(length: int, alphabet: str = ALNUM) -> str:
    return "".join(DRAW.choice(alphabet) for _ in range(length))


HEX = "0123456789abcdef"
PEM_BODY = "\n".join(drawn(64) for _ in range(4))
PEM_ESCAPED = PEM_BODY.replace("\n", "\\n")
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJ{drawn(40)}.{drawn(43)}"

TOKENS = [
    ("anthropic-key", "sk-ant-api03-" + drawn(93)),
    ("openai-key", "sk-proj-" + drawn(60, ALNUM + "_-")),
    ("openai-key", "sk-" + drawn(20) + "T3BlbkFJ" + drawn(20)),
    ("github-token", "ghp_" + drawn(36)),
    ("github-token", "gho_" + drawn(36)),
    ("github-token", "ghu_" + drawn(36)),
    ("github-token", "ghs_" + drawn(36)),
    ("github-token", "ghr_" + drawn(36)),
    ("github-token", "github_pat_" + drawn(22) + "_" + drawn(59)),
    ("gitlab-token", "glpat-" + drawn(20)),
    ("slack-token", "xoxb-" + drawn(12, string.digits) + "-" + drawn(12, string.digits) + "-" + drawn(24)),
    ("slack-token", "xoxp-" + drawn(11, string.digits) + "-" + drawn(24)),
    ("aws-access-key-id", "AKIA" + drawn(16, string.ascii_uppercase + "234567")),
    ("aws-access-key-id", "ASIA" + drawn(16, string.ascii_uppercase + "234567")),
    ("google-api-key", "AIza" + drawn(35)),
    ("google-oauth-token", "ya29." + drawn(60)),
    ("stripe-key", "sk_live_" + drawn(24)),
    ("stripe-key", "rk_live_" + drawn(24)),
    ("npm-token", "npm_" + drawn(36)),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc" + drawn(60)),
    ("huggingface-token", "hf_" + drawn(34, string.ascii_letters)),
    ("sendgrid-key", "SG." + drawn(22) + "." + drawn(43)),
    ("twilio-key", "SK" + drawn(32, HEX)),
    ("telegram-token", "123456789:AA" + drawn(33)),
    ("jwt", JWT),
    ("slack-webhook", f"hooks.slack.com/services/T{drawn(8)}/B{drawn(8)}/{drawn(24)}"),
]
AROUND = [
    *("{}", "see {} there", "'{}'", '"{}"', "({})", "KEY={}", "a\n{}\nb", "`{}`", "x: {},"),
    *("a\\n{}\\n", "\x1b[31m{}\x1b[0m", "a=1%26b%3D{}", "\\u003d{}", "\n+{}", "\n-{}"),
]


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("kind", "token"), TOKENS)
def test_a_vendor_token_is_replaced_wherever_it_stands(kind: str, token: str, around: str) -> None:
    if kind == "slack-webhook":
        token = "https://" + token
    secret = token.removeprefix("https://")
    assert clean(around.format(token)) == around.format(token).replace(secret, f"[redacted:{kind}]")


@pytest.mark.parametrize(
    "text",
    [
        f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\\n{PEM_ESCAPED}\\n-----END PRIVATE KEY-----",
        f"-----BEGIN OPENSSH PRIVATE KEY-----\n{PEM_BODY}",
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{PEM_BODY}\n-----END PGP PRIVATE KEY BLOCK-----",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n\n" + PEM_BODY,
        "     1→-----BEGIN PRIVATE KEY-----\n     2→" + PEM_BODY.replace("\n", "\n     3→"),
    ],
)
def test_a_private_key_goes_whole_even_without_its_end(text: str) -> None:
    result = clean(text + "\nafter" if "END" in text else text)
    assert "[redacted:private-key]" in result
    assert not any(line[:20] in result for line in PEM_BODY.split())
    assert result.endswith("after") is ("END" in text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("postgres://bob:hunter2@db/x", "postgres://bob:[redacted:url-password]@db/x"),
        ("https://:s3cr3t@host", "https://:[redacted:url-password]@host"),
        (
            "a redis://u:p1@h b ftp://u:p2@h",
            "a redis://u:[redacted:url-password]@h b ftp://u:[redacted:url-password]@h",
        ),
        ("Authorization: Bearer abcdef1234567890", "Authorization: Bearer [redacted:authorization]"),
        ("-H 'authorization: Basic dXNlcjpwYXNz'", "-H 'authorization: Basic [redacted:authorization]'"),
        ('"Authorization": "Bearer abcdef1234567890"', '"Authorization": "Bearer [redacted:authorization]"'),
        ("API_KEY=9fK2mQ7xLp4Rt8Wz1Vb6", "API_KEY=[redacted:secret]"),
        ('password: "x8Kp2mQ9vLr4Tn6"', 'password: "[redacted:secret]"'),
        ('"client_secret": "x8Kp2mQ9vLr4Tn6y"', '"client_secret": "[redacted:secret]"'),
        ('\\"client_secret\\": \\"x8Kp2mQ9vLr4Tn6y\\"', '\\"client_secret\\": \\"[redacted:secret]\\"'),
        ("const apiKey = 'x8Kp2mQ9vLr4Tn6y';", "const apiKey = '[redacted:secret]';"),
        ("PASSWORD='S3cr3tP@ssw0rd!'", "PASSWORD='[redacted:secret]'"),
        ("?access_token=x8Kp2mQ9vLr4Tn6y&b=1", "?access_token=[redacted:secret]&b=1"),
        ("secret := `d41d8cd98f00b204e9800998ecf8427e`", "secret := `[redacted:secret]`"),
        (
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "aws_secret_access_key = [redacted:secret]",
        ),
    ],
)
def test_a_named_secret_is_replaced_and_its_name_kept(text: str, left: str) -> None:
    assert clean(text) == left
    assert clean(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn sk-ant- sk-proj-short task-management-system-with-a-long-name-indeed",
        "ghp_short ghp_" + "x" * 36,
        "sk-ant-REDACTED API_KEY=REDACTED token: [REDACTED]",
        "hf_hub_download_with_a_long_name npm_config_registry npm_lifecycle_event_of_the_package",
        "AKIA AKIASHORT ASIAN AIzawa eyJ eyJhbGciOiJIUzI1NiJ9",
        "SG.x SK1234 ya29. SKETCHES 12:34:56 2026-01-01T10:30:00Z",
        'if "-----BEGIN PRIVATE KEY-----" in text: raise',
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN CERTIFICATE-----\n" + PEM_BODY + "\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\n" + PEM_BODY + "\n-----END PUBLIC KEY-----",
        "password: str = Field(default=None)",
        "password=password, token=token, api_key=os.environ['OPENAI_API_KEY']",
        "api_key: process.env.OPENAI_API_KEY_V2_2024",
        "API_KEY=${MY_API_KEY_2024_01} API_KEY=$OPENAI_API_KEY API_KEY=your_api_key_1_2_3",
        'password = "correct horse battery staple 1 2 3"',
        'password: "changeme123changeme123" token: "my-test-token-123-456"',
        "token = getTokenV2For3Users4(x)",
        "secret: /run/secrets/db2/pass3/word4",
        "tokens: 1234567890123, max_tokens=16384000000000",
        "cache_key=d41d8cd98f00b204e9800998ecf8427e sha256: d41d8cd98f00b204e9800998ecf8427e",
        "commit 105efd0a1b2c3d4e5f60718293a4b5c6d7e8f901",
        "Authorization: Bearer <token> and Authorization: Bearer $TOKEN, Authorization: Bearer ${token}",
        "Authorization: Basic auth is what we use",
        "headers['Authorization'] = f'Bearer {token}'",
        "https://user@host/ http://host:8080/@scope/pkg git@github.com:a/b.git a@b",
        "postgres://user:${PASSWORD}@host postgres://$USER:$PASS@host https://u:***@h",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "toolu_01A2b3C4d5E6f7G8h9J0k1L2 msg_01A2b3C4d5E6f7G8h9J0k1L2 req_011CRabc",
        "integrity sha512-" + "a1B2" * 22 + "==",
        "uuid 123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_near_misses_stay_as_the_same_object(text: str) -> None:
    assert clean(text) is text


def test_a_secret_laid_bare_by_a_strip_is_replaced() -> None:
    token = "ghp_" + drawn(36)
    assert clean(token[:10] + "<private>x</private>" + token[10:]) == "[redacted:github-token]"


def test_a_tag_laid_bare_by_a_redaction_hides() -> None:
    assert "payload" not in clean("<private-AKIA" + "A" * 16 + ">payload")


def test_values_are_cleaned_string_by_string_with_their_keys() -> None:
    value = {
        "command": "echo <private>x",
        "after": ["y</private>", 1, None, True, 2.5],
        "<private>k</private>name": {"api_key": "x8Kp2mQ9vLr4Tn6y", "token": "plain"},
        "Authorization": "Bearer abcdef1234567890",
    }
    assert clean_value(value) == {
        "command": "echo ",
        "after": ["y", 1, None, True, 2.5],
        "name": {"api_key": "[redacted:secret]", "token": "plain"},
        "Authorization": "Bearer [redacted:authorization]",
    }
    assert clean_value(clean_value(value)) == clean_value(value)
    assert list(clean_value({"b": 1, "a": 2})) == ["b", "a"]


def test_values_may_nest_deeper_than_the_interpreter_recurses() -> None:
    value: object = "<private>x</private>y"
    for _ in range(100_000):
        value = [value]
    result = clean_value(value)
    depth = 0
    while isinstance(result, list):
        result = result[0]
        depth += 1
    while isinstance(value, list):
        value = value[0]
    assert (depth, result) == (100_000, "y")


@pytest.mark.parametrize(
    "unit",
    [
        *("<", "<private", "< ", "&#0", "\\", "<private a='", "</private a=b ", "\uff1c", "<p\u200b"),
        *("eyJ", "eyJaaaaaaa.", "11meyJ", "@", "://a:b@", "token=", "=", ":", "SG.", "sk-", "12345678:"),
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_hostile_repetition_ends(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    assert clean(clean(text)) == clean(text)


def test_a_long_base64_text_is_returned_untouched() -> None:
    text = base64.b64encode(random.Random(3).randbytes(300_000)).decode()
    assert clean(text) is text
