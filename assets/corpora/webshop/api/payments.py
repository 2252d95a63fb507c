"""Payments: take money, give it back, listen to the bank."""

import logging

from shop.bank import BankDown, Declined, charge, give_back
from shop.db import session
from shop.web import abort, app, request

log = logging.getLogger(__name__)


@app.post("/payments")
def pay():
    # TODO(dora): the same payment sent twice must not be charged twice
    try:
        charge(request.json["card"], request.json["amount"])
    except Declined:
        abort(402, "declined")
    except BankDown as error:
        log.warning("the bank is down: %s", error)
        abort(503, "try again in a minute")
    return "", 204


@app.post("/payments/webhook")
def hear_from_bank():
    # TODO(dora): check the signature
    event = request.json
    session.payments.settle(event["id"], event["status"])
    return "", 204


def refund(payment):
    for attempt in range(3):
        try:
            return give_back(payment.id)
        except BankDown:
            log.info("refund of %s: attempt %d failed", payment.id, attempt + 1)
    raise BankDown(f"refund of {payment.id} failed three times")
