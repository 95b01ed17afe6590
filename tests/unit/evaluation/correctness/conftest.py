import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other in a spin take minutes where other tests run beside these."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
