/*
 * A client of Kubernetes in a loop around poll(2).
 *
 * Create the client with vigil_kube_options.own_thread = 0.
 *
 *     struct pollfd fds[2];
 *     int timeout_ms = -1;
 *     fds[0] = the_program's_own;
 *     vigil_kube_poll_prepare(kube, &fds[1], &timeout_ms);
 *     poll(fds, 2, timeout_ms);
 *     vigil_kube_process(kube);
 *
 * Threads: all functions here run on the loop's thread.
 */
#ifndef VIGIL_KUBE_POLL_H
#define VIGIL_KUBE_POLL_H

#include <poll.h>
#include <vigil/kube/client.h>

/* Prepares poll: fills the client's entry and lowers the timeout, which is -1 for none, to the
 * client's. After poll call vigil_kube_process. */
static inline void vigil_kube_poll_prepare(const vigil_kube *kube, struct pollfd *fd,
                                           int *timeout_ms)
{
    int wanted_ms = vigil_kube_timeout_ms(kube);
    fd->fd = vigil_kube_fd(kube);
    fd->events = POLLIN;
    fd->revents = 0;
    if (wanted_ms >= 0 && (*timeout_ms < 0 || wanted_ms < *timeout_ms))
        *timeout_ms = wanted_ms;
}

#endif
