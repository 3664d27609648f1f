"""Reaching hosts: names, links, orders, clocks, and facts about each host."""
