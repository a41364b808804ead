"""A server of S3's interface, for tests of tiers in buckets. Arguments are moto's own."""

import sys

from moto.server import main

main(sys.argv[1:])
