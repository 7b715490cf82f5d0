"""One table of codes: what Python says of a reason code is what the core says."""

from __future__ import annotations

from penstock import MQError, _engine, constants, errors


def test_reason_codes_of_python_and_core_agree() -> None:
    known = {code.value: f"MQRC_{code.name}" for code in constants.ReasonCode}
    for code in range(10000):
        assert _engine.reason_name(code) == known.get(code, "MQRC_UNKNOWN"), code


def test_completion_codes_of_python_and_core_agree() -> None:
    for code in constants.ReasonCode:
        expected = 0 if code == 0 else 1 if code in constants.WARNINGS else 2
        assert _engine.comp_code(code) == expected, code
        assert MQError(code).comp_code == (expected or 2), code


def test_an_error_has_its_name_and_an_unknown_code_is_mqrc_unknown() -> None:
    assert MQError(2053, "x").reason_name == "MQRC_Q_FULL"
    assert str(MQError(2053, "queue A")) == "MQRC_Q_FULL (2053): queue A"
    assert MQError(9999).reason_name == "MQRC_UNKNOWN"


def test_every_reason_has_one_class_and_every_class_is_exported() -> None:
    import penstock

    for reason, cls in errors._CLASSES.items():
        assert type(errors.error_for(reason, "text")) is cls
        assert getattr(penstock, cls.__name__) is cls
        assert issubclass(cls, MQError)


def test_crc32c_is_the_castagnoli_polynomial() -> None:
    assert _engine.crc32c(b"123456789") == 0xE3069283
    assert _engine.crc32c(b"6789", _engine.crc32c(b"12345")) == 0xE3069283
