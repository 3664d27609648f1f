"""Reaching hosts: names, links, orders, clocks, and what each says of itself."""
