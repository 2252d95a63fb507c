"""Customers: sign up, look up, export."""

import csv
import io

from shop.db import session
from shop.mail import MailError, send
from shop.web import abort, app, jsonify, request


@app.post("/customers")
def sign_up():
    customer = session.customers.create(**request.json)
    try:
        send(customer.mail, subject="Welcome")
    except MailError:
        # TODO(chidi): try again later instead of only noting it
        session.notes.add(f"no welcome mail for {customer.id}")
    return jsonify(customer), 201


@app.get("/customers/<int:number>")
def show_customer(number):
    customer = session.customers.find(number)
    if customer is None:
        abort(404, f"no customer {number}")
    return jsonify(customer)


@app.get("/customers/export")
def export_customers():
    # TODO(ana): only for administrators
    out = io.StringIO()
    writer = csv.writer(out)
    for customer in session.customers.all():
        writer.writerow([customer.id, customer.mail])
    return out.getvalue(), 200, {"Content-Type": "text/csv"}
