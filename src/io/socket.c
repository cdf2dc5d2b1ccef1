#include "io/socket.h"

#include <stdio.h>

enum status network_loop_new(struct network *network, struct loop **ret_loop)
{
    return network->ops->loop_new(network, ret_loop);
}

enum status network_listen(struct network *network, const struct address *address,
                           struct listener *ret_listener, struct error *error)
{
    return network->ops->listen(network, address, ret_listener, error);
}

enum status network_connect(struct network *network, const struct address *address,
                            struct socket *ret_socket, struct error *error)
{
    return network->ops->connect(network, address, ret_socket, error);
}

enum status socket_connected(struct socket *socket)
{
    return socket->ops->connected(socket);
}

void socket_reason_format(int error_number, char text[SOCKET_REASON_BYTES])
{
    const char *words = strerrordesc_np(error_number);
    if (words)
        snprintf(text, SOCKET_REASON_BYTES, "%c%s", words[0] | 0x20, words + 1);
    else
        snprintf(text, SOCKET_REASON_BYTES, "errno %d", error_number);
}

enum status socket_read(struct socket *socket, void *to, size_t len, size_t *ret_len)
{
    assert(len > 0);
    return socket->ops->read(socket, to, len, ret_len);
}

enum status socket_writev(struct socket *socket, const struct iovec *parts, int count,
                          size_t *ret_len)
{
    return socket->ops->writev(socket, parts, count, ret_len);
}

enum status socket_write(struct socket *socket, struct slice bytes, size_t *ret_len)
{
    assert(bytes.len > 0);
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes.ptr, .iov_len = bytes.len};
    return socket_writev(socket, &part, 1, ret_len);
}

void socket_shutdown(struct socket *socket)
{
    socket->ops->shutdown(socket);
}

void socket_close(struct socket *socket)
{
    if (socket->ops)
        socket->ops->close(socket);
    *socket = (struct socket){.handle = -1};
}

enum status socket_peer(const struct socket *socket, struct address *ret_address)
{
    return socket->ops->peer(socket, ret_address);
}

enum status listener_accept(struct listener *listener, struct socket *ret_socket)
{
    return listener->ops->accept(listener, ret_socket);
}

void listener_close(struct listener *listener)
{
    if (listener->ops)
        listener->ops->close(listener);
    listener->ops = NULL;
    listener->handle = -1;
}
