"""The home screen: the disks, and the actions for them."""
