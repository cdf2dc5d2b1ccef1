/*
 * Serves etcd's and Kubernetes' API for a store inside a program: a server (server/server.h) over
 * the engine that is open. Started and stopped by one thread at a time.
 */
#ifndef VIGIL_EMBED_LISTENER_H
#define VIGIL_EMBED_LISTENER_H

#include "etcd/shared/config.h"
#include "server/auth.h"
#include "wire/limits.h"

struct embed_listener;
struct engine;

struct embed_listener_options {
    struct engine *engine;          /* borrowed, as everything here */
    const struct etcd_config *etcd; /* copied */
    const struct wire_limits *wire; /* copied */
    const struct server_auth *auth;
    unsigned threads;
    const char *client_urls, *kube_urls; /* with commas; NULL: none */
};

MUST_CHECK
enum status embed_listener_new(const struct embed_listener_options *options,
                               struct embed_listener **ret_listener, struct error *error);
/* The addresses with commas, with their real ports. At most size bytes with the final zero. */
void embed_listener_urls(const struct embed_listener *listener, char *text, size_t size);
/* Any thread: connections are ended, and no others are accepted. */
void embed_listener_drain(struct embed_listener *listener);
void embed_listener_free(struct embed_listener *listener); /* accepts NULL */

#endif
