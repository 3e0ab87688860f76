"""parts() without a return."""

from streamproof import *


class Shop(Model):
    def parts(self):
        Parts(left=Shop())
