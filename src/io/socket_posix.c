#include "base/clock.h"
#include "io/loop.h"
#include "io/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BACKLOG = 4096, /* connections waiting to be accepted */
    UNSENT_BYTES_MAX =
        128 *
        1024, /* in a socket's send buffer: what is queued there cannot be reordered any more */
    KEEPALIVE_IDLE_S = 30, /* as Go's listeners do */
    KEEPALIVE_INTERVAL_S = 10,
    KEEPALIVE_PROBES = 6,
};

static enum status from_transfer_errno(struct socket *socket)
{
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return ST_AGAIN;
    socket->error_number = errno;
    return ST_CLOSED;
}

static enum status posix_read(struct socket *socket, void *to, size_t len, size_t *ret_len)
{
    ssize_t n;
    do
        n = recv(socket->handle, to, len, 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return from_transfer_errno(socket);
    if (n == 0)
        return ST_END;
    *ret_len = (size_t)n;
    return ST_OK;
}

static enum status posix_writev(struct socket *socket, const struct iovec *parts, int count,
                                size_t *ret_len)
{
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts,
                                   .msg_iovlen = (size_t)count};
    /* MSG_NOSIGNAL: a connection that the peer has closed must not end the process with SIGPIPE. */
    ssize_t n;
    do /* one part is the most frequent case, and cheaper this way */
        n = count == 1 ? send(socket->handle, parts->iov_base, parts->iov_len, MSG_NOSIGNAL)
                       : sendmsg(socket->handle, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return from_transfer_errno(socket);
    *ret_len = (size_t)n;
    return ST_OK;
}

static void posix_shutdown(struct socket *socket)
{
    (void)shutdown(socket->handle,
                   SHUT_WR); /* fails only if the peer is gone, which reading reports */
}

static void posix_close(struct socket *socket)
{
    close(socket->handle);
}

static enum status posix_peer(const struct socket *socket, struct address *ret_address)
{
    struct address address = {.len = sizeof(address.as)};
    if (getpeername(socket->handle, &address.as.any, &address.len) != 0)
        return ST_CLOSED;
    *ret_address = address;
    return ST_OK;
}

static enum status posix_connected(struct socket *socket)
{
    int found = 0;
    socklen_t len = sizeof(found);
    if (getsockopt(socket->handle, SOL_SOCKET, SO_ERROR, &found, &len) != 0)
        found = errno;
    socket->error_number = found;
    return found ? ST_CLOSED : ST_OK;
}

static const struct socket_ops socket_posix_ops = {
    .read = posix_read,
    .writev = posix_writev,
    .shutdown = posix_shutdown,
    .close = posix_close,
    .peer = posix_peer,
    .connected = posix_connected,
};

/* Accepted sockets inherit these options from the listener, which saves system calls per
 * connection. */
static void set_tcp_options(int fd)
{
    const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT_BYTES_MAX},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S},
        {IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES},
    };
    for (size_t i = 0; i < COUNT_OF(options);
         i++) /* a failure is ignored: each is only an improvement */
        (void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(int));
}

static enum status posix_accept(struct listener *listener, struct socket *ret_socket)
{
    int fd = accept4(listener->handle, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        *ret_socket = (struct socket){.ops = &socket_posix_ops, .handle = fd};
        return ST_OK;
    }
    /* Descriptors or memory are lacking, which later may be better; any other error concerns only
     * this connection. */
    switch (errno) {
    case EAGAIN:
        return ST_AGAIN;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
        return ST_LIMIT;
    default: /* errors of the connection, which accept returns */
        return ST_CLOSED;
    }
}

static void posix_close_listener(struct listener *listener)
{
    close(listener->handle);
    if (address_is_path(&listener->address))
        (void)unlink(address_path(&listener->address));
}

static const struct listener_ops listener_posix_ops = {
    .accept = posix_accept,
    .close = posix_close_listener,
};

static int open_socket(const struct address *address)
{
    int fd = socket(address->as.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !address_is_path(address))
        set_tcp_options(fd);
    return fd;
}

static void closep(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

/* Returns the descriptor; the variable no longer closes it. */
static int take_fd(int *fd)
{
    int taken = *fd;
    *fd = -1;
    return taken;
}

/* A socket file outlives its process. If no process accepts connections on it, it is removed. */
static void remove_stale_path(const struct address *address)
{
    struct stat found;
    const char *path = address_path(address);
    if (lstat(path, &found) != 0 || !S_ISSOCK(found.st_mode))
        return;
    AUTO(closep) int probe = open_socket(address);
    /* Only a refused connection proves that no process listens: a full queue fails with EAGAIN. */
    if (probe >= 0 && connect(probe, &address->as.any, address->len) != 0 && errno == ECONNREFUSED)
        (void)unlink(path);
}

static const char *listen_advice(int error_number)
{
    switch (error_number) {
    case EADDRINUSE:
        return "; another process listens there: stop it or choose another address";
    case EADDRNOTAVAIL:
        return "; no interface of this machine has it: choose another address";
    case EACCES:
        return "; this user may not listen there: choose a port above 1023 or another place";
    default:
        return "";
    }
}

static enum status listen_error(struct error *error, const struct address *address,
                                const char *what)
{
    char text[ADDRESS_TEXT_BYTES];
    int error_number = errno;
    address_format(address, text);
    enum status status = error_number == EADDRINUSE ? ST_IN_USE : status_from_errno(error_number);
    char why[SOCKET_REASON_BYTES];
    socket_reason_format(error_number, why);
    return error_set(error, status, "listen %s %s: %s: %s%s",
                     address_is_path(address) ? "unix" : "tcp", text, what, why,
                     listen_advice(error_number));
}

static enum status posix_listen(struct network *network, const struct address *address,
                                struct listener *ret_listener, struct error *error)
{
    (void)network;
    if (address_is_path(address))
        remove_stale_path(address);
    AUTO(closep) int fd = open_socket(address);
    if (fd < 0)
        return listen_error(error, address, "socket");
    /* Connections of an earlier process that are in TIME_WAIT would otherwise keep the port for a
     * minute. */
    const int on = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address->as.any, address->len) != 0)
        return listen_error(error, address, "bind");
    if (listen(fd, BACKLOG) != 0)
        return listen_error(error, address, "listen");

    struct listener listener = {.ops = &listener_posix_ops, .address = *address};
    /* With port 0 the kernel has chosen one. */
    if (!address_is_path(address)) {
        listener.address.len = sizeof(listener.address.as);
        if (getsockname(fd, &listener.address.as.any, &listener.address.len) != 0)
            return listen_error(error, address, "getsockname");
    }
    listener.handle = take_fd(&fd);
    *ret_listener = listener;
    return ST_OK;
}

static enum status connect_error(struct error *error, int error_number)
{
    char why[SOCKET_REASON_BYTES];
    socket_reason_format(error_number, why);
    switch (error_number) {
    case EAGAIN: /* the queue of a Unix socket is full */
        return error_set(error, ST_AGAIN, "%s", why);
    case EMFILE:
    case ENFILE:
        return error_set(error, ST_LIMIT, "%s", why);
    case ENOBUFS:
    case ENOMEM:
        return error_set(error, ST_NOMEM, "%s", why);
    default:
        return error_set(error, ST_CLOSED, "%s", why);
    }
}

/* The port is chosen by connect, so that connections to different servers can share one. */
static bool bind_source(int fd, const struct address *source)
{
    const int on = 1;
    (void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    return bind(fd, &source->as.any, source->len) == 0;
}

/* A connect that a signal interrupted continues like one that has just begun. */
static enum status posix_connect(struct network *network, const struct address *address,
                                 struct socket *ret_socket, struct error *error)
{
    AUTO(closep) int fd = open_socket(address);
    if (fd < 0)
        return connect_error(error, errno);
    if (network->source && !address_is_path(address) && !bind_source(fd, network->source))
        return connect_error(error, errno);
    if (connect(fd, &address->as.any, address->len) != 0 && errno != EINPROGRESS && errno != EINTR)
        return connect_error(error, errno);
    *ret_socket = (struct socket){.ops = &socket_posix_ops, .handle = take_fd(&fd)};
    return ST_OK;
}

static enum status posix_loop_new(struct network *network, struct loop **ret_loop)
{
    (void)network;
    return loop_new(clock_system(), ret_loop);
}

struct network *network_posix(void)
{
    static const struct network_ops ops = {
        .loop_new = posix_loop_new,
        .listen = posix_listen,
        .connect = posix_connect,
    };
    static struct network network = {.ops = &ops};
    return &network;
}
