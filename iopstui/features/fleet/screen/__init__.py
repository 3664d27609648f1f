"""Many hosts on the screen: the whole on the dashboard, each in a row or a map, any one of them."""
