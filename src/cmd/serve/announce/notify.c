#include "cmd/serve/announce/notify.h"

#include "base/clock.h"
#include "base/options/value.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_manager(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = path ? strlen(path) : 0;
    /* Other kinds of addresses, such as systemd's vsock, are not supported. */
    if (len == 0 || len >= sizeof(address.sun_path) || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, len);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* a name without a file */
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 address_len);
    close(fd);
}

int64_t notify_watchdog_ns(void)
{
    const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    int64_t value, owner;
    if (!usec || option_value_int(usec, &value) != ST_OK || value <= 0 ||
        value > INT64_MAX / NS_PER_US)
        return 0;
    /* The variables are inherited: those for another process must not make this one feed its
     * watchdog. */
    if (pid && (option_value_int(pid, &owner) != ST_OK || owner != getpid()))
        return 0;
    return value * NS_PER_US;
}
