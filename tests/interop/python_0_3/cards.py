"""Signs and verifies a card with the Python SDK 0.3: `cards.py sign ALG` and `cards.py verify`, JSON in and out."""

import json
import sys

from a2a.types import AgentCard
from a2a.utils.signing import SignatureVerificationError, create_agent_card_signer, create_signature_verifier
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from jwt import PyJWK
from jwt.algorithms import ECAlgorithm, OKPAlgorithm
from jwt.exceptions import PyJWKError

KINDS = {
    "EdDSA": (ed25519.Ed25519PrivateKey.generate, OKPAlgorithm),
    "ES256": (lambda: ec.generate_private_key(ec.SECP256R1()), ECAlgorithm),
}
KID = "made-by-older-python"


def sign(algorithm):
    generate, kind = KINDS[algorithm]
    key = generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signer = create_agent_card_signer(pem, {"alg": algorithm, "kid": KID, "typ": "JOSE", "jku": None})
    card = signer(AgentCard.model_validate(json.load(sys.stdin)))
    jwk = {**kind.to_jwk(key.public_key(), as_dict=True), "kid": KID, "alg": algorithm}
    return {"card": card.model_dump(mode="json", by_alias=True, exclude_none=True), "jwks": {"keys": [jwk]}}


def verify():
    given = json.load(sys.stdin)
    keys = {jwk["kid"]: jwk for jwk in given["jwks"]["keys"]}

    def key(kid, jku):
        # Only PyJWT's own errors count as a signature that does not verify.
        if kid not in keys:
            raise PyJWKError(f"no key {kid}")
        return PyJWK(keys[kid])

    try:
        create_signature_verifier(key, list(KINDS))(AgentCard.model_validate(given["card"]))
    except SignatureVerificationError as refusal:
        return {"verified": False, "detail": str(refusal)}
    return {"verified": True, "detail": ""}


if __name__ == "__main__":
    json.dump(sign(sys.argv[2]) if sys.argv[1] == "sign" else verify(), sys.stdout)
