"""S3: objects read through obstore, written and listed through s3fs."""
