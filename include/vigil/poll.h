/*
 * A client in a loop around poll(2).
 *
 * Create the client with vigil_options.own_thread = 0.
 *
 *     struct pollfd fds[2];
 *     int timeout_ms = -1;
 *     fds[0] = the_program's_own;
 *     vigil_poll_prepare(client, &fds[1], &timeout_ms);
 *     poll(fds, 2, timeout_ms);
 *     vigil_client_process(client);
 *
 * Threads: all functions here run on the loop's thread.
 */
#ifndef VIGIL_POLL_H
#define VIGIL_POLL_H

#include <poll.h>
#include <vigil/client.h>

/* Prepares poll: fills the client's entry and lowers the timeout, which is -1 for none, to the
 * client's. After poll call vigil_client_process. */
static inline void vigil_poll_prepare(const vigil_client *client, struct pollfd *fd,
                                      int *timeout_ms)
{
    int wanted_ms = vigil_client_timeout_ms(client);
    fd->fd = vigil_client_fd(client);
    fd->events = POLLIN;
    fd->revents = 0;
    if (wanted_ms >= 0 && (*timeout_ms < 0 || wanted_ms < *timeout_ms))
        *timeout_ms = wanted_ms;
}

#endif
