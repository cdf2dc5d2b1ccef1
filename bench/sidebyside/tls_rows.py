"""What is measured over TLS, beside the same without it on the same server: TLS 1.3 with the cipher that both sides prefer."""
from sidebyside import watch_rows

TIME = ("--warmup", "1s", "--duration", "3s")


def beside_plain(key, server, *words):
    server.secure()
    server.start()
    plain, secure = server.bench(*words), server.bench_tls(*words)
    return {f"{key}.rate": secure["operations_per_second"],
            f"{key}.of_plain": secure["operations_per_second"] / plain["operations_per_second"],
            f"{key}.cpu_us": secure["server_cpu_us_per_operation"],
            "other_cores": max(plain["other_cores"], secure["other_cores"])}


def put(server):
    return beside_plain("tls_put", server, "put", "--connections", 100, "--pipeline", 10, *TIME)


def get(server):
    return beside_plain("tls_get", server, "get", "--connections", 10, "--pipeline", 10, "--prepare", *TIME)


def events(server):
    return beside_plain("tls_events", server, "watch", "--connections", 1, "--streams", 1, "--watchers", 100, "--pipeline", 16,
                        *watch_rows.ONE_KEY, "--await-events", "--warmup", "1s", "--duration", "2s")
