"""What text may be stored or shown. Every text passes ``clean`` before either."""

from endless_mode.privacy.cleaning import clean, clean_lines, clean_value, is_clean, is_wholly_private
from endless_mode.privacy.secrets import redact_secrets
from endless_mode.privacy.tags import strip_tags

__all__ = ["clean", "clean_lines", "clean_value", "is_clean", "is_wholly_private", "redact_secrets", "strip_tags"]
