"""A decoder for tests, which does what it is told."""

import ctypes
import os
import signal
import time


def decode(parameters, data):
    match parameters["do"]:
        case "reverse":
            return data[::-1]
        case "pid":
            return os.getpid().to_bytes(8, "little")
        case "crash":
            ctypes.string_at(0)
        case "abort":
            os.kill(os.getpid(), signal.SIGABRT)
        case "exit":
            os._exit(0)
        case "raise":
            raise ValueError("bad data")
        case "short":
            return data[:2]
        case "lie":
            os.write(0, b"\1" + b"\xff" * 100)
            time.sleep(60)
        case "print":
            print("\1" + "?" * 100, flush=True)
            os.write(1, b"\1" + b"\xff" * 100)
        case "grow":
            return bytearray(1 << 30)
        case "hang":
            time.sleep(60)
    return data
