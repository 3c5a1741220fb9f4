# SPDX-License-Identifier: BSD-2-Clause
"""The demo's sample program: a small web shop that serves made-up requests for a while."""

import hashlib
import html
import json
import random
import re
import threading
import time

LIFETIME_S = 10
REQUEST = re.compile(r"(?P<method>GET|POST) (?P<path>/\w*)(?:\?(?P<query>\S*))? HTTP/1\.1")
WORDS = "red blue warm light small steel paper garden kitchen winter lamp chair cup coat".split()


class Catalog:
    """Products in a tree of categories."""

    def __init__(self, products):
        self.products = [self.make_product(number) for number in range(products)]
        self.root = self.make_category(self.products, depth=4)

    @staticmethod
    def make_product(number):
        name = " ".join(random.sample(WORDS, 3))
        return {"id": number, "name": name, "price": random.randint(100, 9999) / 100}

    def make_category(self, products, depth):
        if depth == 0:
            return {"products": products, "children": []}
        parts = [products[start::3] for start in range(3)]
        return {"products": [], "children": [self.make_category(part, depth - 1) for part in parts]}

    def search(self, category, pattern):
        """All products of a category and of those below it whose name matches."""
        found = [product for product in category["products"] if pattern.search(product["name"])]
        for child in category["children"]:
            found.extend(self.search(child, pattern))
        return found


class Shop:
    """Answers one request after another."""

    def __init__(self, catalog):
        self.catalog = catalog
        self.orders = []
        self.pages = {"/search": self.show_search, "/cart": self.show_cart, "/buy": self.check_out}

    def handle_request(self, line):
        path, words = self.parse_request(line)
        return self.pages[path](words)

    def parse_request(self, line):
        request = REQUEST.fullmatch(line)
        query = request.group("query")
        return request.group("path"), re.findall(r"[a-z]+", query)

    def show_search(self, words):
        pattern = re.compile("|".join(words))
        found = self.catalog.search(self.catalog.root, pattern)
        return self.render_page("Found", self.rank(found, words)[:40])

    def rank(self, products, words):
        return sorted(products, key=lambda product: self.relevance(product, words), reverse=True)

    def relevance(self, product, words):
        return sum(word in product["name"] for word in words) - product["price"] / 1000

    def show_cart(self, words):
        products = random.choices(self.catalog.products, k=40)
        return json.dumps({"items": products, "total": self.total_price(products)}, indent=2)

    def total_price(self, products):
        return round(sum(self.discounted(product) for product in products), 2)

    def discounted(self, product):
        return product["price"] * (0.9 if "winter" in product["name"] else 1)

    def check_out(self, words):
        products = random.choices(self.catalog.products, k=5)
        self.orders.append([product["id"] for product in products])
        return self.render_page(self.sign_receipt(json.dumps(products)), products)

    def sign_receipt(self, text):
        return hashlib.pbkdf2_hmac("sha256", text.encode(), b"a shop's secret", 800).hex()

    def render_page(self, title, products):
        rows = "".join(self.render_row(product) for product in products)
        return "<h1>%s</h1><table>%s</table>" % (html.escape(title), rows)

    def render_row(self, product):
        return "<tr><td>%s<td>%.2f" % (html.escape(product["name"]), product["price"])


def recommend(shop, end):
    """The worker thread: counts which products are bought together."""
    while time.monotonic() < end:
        count_pairs(shop.orders[-200:])
        time.sleep(0.02)


def count_pairs(orders):
    pairs = {}
    for order in orders:
        for first in order:
            for second in order:
                pairs[first, second] = pairs.get((first, second), 0) + 1
    return pairs


def make_request():
    path = random.choices(["/search", "/cart", "/buy"], weights=[4, 9, 9])[0]
    return "GET %s?q=%s HTTP/1.1" % (path, "+".join(random.sample(WORDS, 2)))


def main():
    shop = Shop(Catalog(products=1000))
    end = time.monotonic() + LIFETIME_S
    threading.Thread(target=recommend, args=(shop, end), name="recommender", daemon=True).start()
    while time.monotonic() < end:
        shop.handle_request(make_request())


if __name__ == "__main__":
    main()
