"""What the commands of one machine share: from one run, watch or experiment to its end."""
