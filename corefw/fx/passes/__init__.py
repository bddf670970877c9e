"""What reads or changes graphs."""
