"""What looks at receipts later: sensors, checks, schedules, what is stored now."""
