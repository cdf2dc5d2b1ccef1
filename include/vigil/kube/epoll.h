/*
 * A client of Kubernetes in a loop around epoll(7).
 *
 * Create the client with vigil_kube_options.own_thread = 0.
 *
 * Threads: all functions here run on the loop's thread.
 */
#ifndef VIGIL_KUBE_EPOLL_H
#define VIGIL_KUBE_EPOLL_H

#include <sys/epoll.h>
#include <vigil/kube/client.h>

/* Adds the client's descriptor; needed once. data is returned by epoll_wait. Returns 0, or -1 with
 * errno. */
static inline int vigil_kube_epoll_add(int epoll_fd, const vigil_kube *kube, epoll_data_t data)
{
    struct epoll_event event;
    event.events = EPOLLIN;
    event.data = data;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, vigil_kube_fd(kube), &event);
}

/* Returns the timeout for epoll_wait: that of the program (-1 for none), or the client's if that is
 * shorter. After epoll_wait call vigil_kube_process. */
static inline int vigil_kube_epoll_timeout(const vigil_kube *kube, int timeout_ms)
{
    int wanted_ms = vigil_kube_timeout_ms(kube);
    return wanted_ms >= 0 && (timeout_ms < 0 || wanted_ms < timeout_ms) ? wanted_ms : timeout_ms;
}

#endif
