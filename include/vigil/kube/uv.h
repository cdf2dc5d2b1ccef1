/*
 * A client of Kubernetes in a loop of libuv.
 *
 * Create the client with vigil_kube_options.own_thread = 0, and link the program with libuv as
 * well.
 *
 * Threads: all functions here run on the loop's thread.
 *
 * Example: examples/kube_loop_uv.c
 */
#ifndef VIGIL_KUBE_UV_H
#define VIGIL_KUBE_UV_H

#include <uv.h>
#include <vigil/kube/client.h>

/* Connects a client with a loop. It is owned by the program, must not move, and lives until the
 * loop has closed its handles. The fields are internal. */
typedef struct vigil_kube_uv {
    vigil_kube *kube;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_prepare_t prepare;
} vigil_kube_uv;

/* Internal. */
static inline void vigil_kube_uv_on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    vigil_kube_process(((vigil_kube_uv *)poll->data)->kube);
}

/* Internal. */
static inline void vigil_kube_uv_on_timer(uv_timer_t *timer)
{
    vigil_kube_process(((vigil_kube_uv *)timer->data)->kube);
}

/* Internal: called before the loop waits, because the client may want another timeout. */
static inline void vigil_kube_uv_on_prepare(uv_prepare_t *prepare)
{
    vigil_kube_uv *uv = (vigil_kube_uv *)prepare->data;
    int timeout_ms = vigil_kube_timeout_ms(uv->kube);
    if (timeout_ms >= 0)
        uv_timer_start(&uv->timer, vigil_kube_uv_on_timer, (uint64_t)timeout_ms, 0);
    else
        uv_timer_stop(&uv->timer);
}

/* The client makes its callbacks in the loop from now on. Returns 0, or libuv's error. */
static inline int vigil_kube_uv_start(vigil_kube_uv *uv, uv_loop_t *loop, vigil_kube *kube)
{
    int error = uv_poll_init(loop, &uv->poll, vigil_kube_fd(kube));
    if (error)
        return error;
    uv->kube = kube;
    uv_timer_init(loop, &uv->timer);
    uv_prepare_init(loop, &uv->prepare);
    uv->poll.data = uv->timer.data = uv->prepare.data = uv;
    uv_prepare_start(&uv->prepare, vigil_kube_uv_on_prepare);
    return uv_poll_start(&uv->poll, UV_READABLE, vigil_kube_uv_on_poll);
}

/* Closes the handles; the client may be freed at once, vigil_kube_uv once the loop has run. */
static inline void vigil_kube_uv_stop(vigil_kube_uv *uv)
{
    uv_close((uv_handle_t *)&uv->poll, NULL);
    uv_close((uv_handle_t *)&uv->timer, NULL);
    uv_close((uv_handle_t *)&uv->prepare, NULL);
}

#endif
