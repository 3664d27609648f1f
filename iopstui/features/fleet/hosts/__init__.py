"""Reaching hosts: names, links, orders and clocks; and facts about each host."""
