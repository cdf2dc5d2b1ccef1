/* What client.c and client_context.c share; only for them. */
#ifndef VIGIL_NET_TLS_CLIENT_PRIVATE_H
#define VIGIL_NET_TLS_CLIENT_PRIVATE_H

#include "net/tls/client.h"

struct bio_method_st;

struct tls_client_source {
    struct tls_client_options options; /* its texts and bytes are owned */
    struct tls_source *source;         /* owned */
    struct bio_method_st *method;      /* owned; net/tls/bytes.h */
};

#endif
