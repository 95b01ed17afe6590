"""Libraries with device code, built without a compiler of it."""

import subprocess


def build_library(folder, name, code, data=b"", section='.nv_fatbin,"a"'):
    """With `code` as compilers of device code place it."""
    (folder / "code").write_bytes(code)
    (folder / "data").write_bytes(data)
    text = f'.section {section}\n.balign 8\n.incbin "{folder}/code"\n.section .rodata\n.incbin "{folder}/data"\n'
    (folder / "code.s").write_text(text)
    subprocess.run(["cc", "-shared", "-nostdlib", "-o", folder / name, folder / "code.s"], check=True)
    return str(folder / name)
