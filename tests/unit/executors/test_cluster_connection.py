import contextlib
import importlib.util
import socket
import threading

import pytest

from harness.domain import DeviceError, UsageError
from harness.executors.cluster.connection import ClusterSettings, connect
from harness.executors.cluster.executor import RayExecutor
from harness.executors.settings import LocalSettings

if importlib.util.find_spec("ray") is None:
    pytest.skip("needs the package ray", allow_module_level=True)


@pytest.fixture
def listen():
    """Starts a server on this machine that answers each connection with these bytes; its address."""
    with contextlib.ExitStack() as stack:

        def start(answer):
            server = stack.enter_context(socket.create_server(("", 0)))

            def serve():
                with contextlib.suppress(OSError):
                    while True:
                        line, _ = server.accept()
                        stack.enter_context(line)
                        if answer:
                            line.sendall(answer)

            threading.Thread(target=serve, daemon=True).start()
            return f"127.0.0.1:{server.getsockname()[1]}"

        yield start


def test_a_server_that_is_no_cluster_is_refused_at_once(listen):
    address = listen(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    for given in (address, f"ray://{address}"):
        with pytest.raises(DeviceError, match="is no Ray cluster"):
            connect(given)


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("status", [b"\x0212", b"\x0214"], ids=["no such method", "nothing behind a proxy"])
@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_another_server_with_the_protocol_of_ray_is_refused_at_once(listen, scheme, status):
    headers = b"\x88@\x0ccontent-type\x10application/grpc@\x0bgrpc-status" + status
    address = listen(SETTINGS + bytes([0, 0, len(headers), 1, 5, 0, 0, 0, 1]) + headers)
    with pytest.raises(DeviceError, match="is no Ray cluster"):
        connect(f"{scheme}{address}")


@pytest.mark.slow  # 5 s each
@pytest.mark.parametrize("answer", [b"", SETTINGS], ids=["nothing", "only settings"])
def test_a_server_that_says_too_little_is_refused_soon(listen, answer):
    with pytest.raises(DeviceError, match="timed out"):
        connect(listen(answer))


@pytest.mark.parametrize("device", ["cuda:0", "tpu"])
def test_a_device_that_no_cluster_has_is_wrong_usage(device):
    with pytest.raises(UsageError, match=f"--executor ray takes --device auto, cuda, cpu, emulated, not '{device}'"):
        RayExecutor(ClusterSettings(address="127.0.0.1:1"), LocalSettings(device=device))


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1:1", DeviceError),
        ("ray://127.0.0.1:1", DeviceError),
        ("host.invalid:1", DeviceError),
        ("127.0.0.1", UsageError),
        ("ray://host", UsageError),
    ],
)
def test_an_address_without_a_server_is_refused_at_once(address, kind):
    with pytest.raises(kind, match=f"no Ray cluster at {address}: .*Start one with"):
        connect(address)


def test_the_variable_of_ray_names_the_cluster_of_auto(listen, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", listen(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(DeviceError, match="is no Ray cluster"):
        connect("auto")
