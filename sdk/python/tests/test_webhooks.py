"""Verification, with the test vector of the standard."""

import unittest

from lubdub.webhooks import Verifier, WebhookHeaders, WebhookSignature, WebhookTime

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"test": 2432232314}'
HEADERS = {
    "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


class Webhooks(unittest.TestCase):
    def verifier(self, *secrets: str, at: int = 1614265330) -> Verifier:
        return Verifier(*(secrets or (SECRET,)), now=lambda: at)

    def test_the_vector_of_the_standard(self) -> None:
        self.assertEqual(self.verifier().verify(HEADERS, BODY).id, "msg_p5jXN8AQM9LWM0D4loKWxJek")
        other = "whsec_" + "A" * 32
        self.verifier(other, SECRET, at=1614265330 + 299).verify(HEADERS, BODY)

    def test_invalid_signatures(self) -> None:
        self.assertRaises(WebhookSignature, self.verifier().verify, HEADERS, BODY + b" ")
        self.assertRaises(WebhookSignature, self.verifier("whsec_" + "A" * 32).verify, HEADERS, BODY)
        self.assertRaises(WebhookTime, self.verifier(at=1614265330 + 301).verify, HEADERS, BODY)
        self.assertRaises(WebhookTime, self.verifier(at=1614265330 - 301).verify, HEADERS, BODY)
        self.assertRaises(WebhookHeaders, self.verifier().verify, {**HEADERS, "webhook-timestamp": "now"}, BODY)
        self.assertRaises(WebhookHeaders, self.verifier().verify, {}, BODY)

    def test_an_invalid_secret(self) -> None:
        for secrets in ((), ("whsec_",), ("whsec_####",), ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",)):
            self.assertRaises(ValueError, Verifier, *secrets)
