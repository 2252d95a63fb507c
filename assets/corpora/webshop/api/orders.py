"""Orders: create, list, cancel."""

from shop.db import Conflict, NotFound, session
from shop.web import abort, app, jsonify, request


@app.get("/orders")
def list_orders():
    # TODO(ana): page through the result, the list is too long for big customers
    return jsonify(session.orders.all())


@app.post("/orders")
def create_order():
    try:
        order = session.orders.create(**request.json)
    except Conflict as error:
        abort(409, str(error))
    return jsonify(order), 201


@app.get("/orders/<int:number>")
def show_order(number):
    try:
        return jsonify(session.orders.get(number))
    except NotFound:
        abort(404, f"no order {number}")


@app.delete("/orders/<int:number>")
def cancel_order(number):
    # TODO(bilal): refund what was paid already
    # TODO(ana): tell the warehouse before the parcel leaves
    session.orders.cancel(number)
    return "", 204


def total(order):
    return sum(line.price * line.count for line in order.lines)
