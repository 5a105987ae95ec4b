"""Arrays copied to files of other formats and back."""
