/* The context of a TLS listener: who we are, and which clients are admitted. */
#ifndef VIGIL_NET_TLS_SERVER_CONTEXT_H
#define VIGIL_NET_TLS_SERVER_CONTEXT_H

#include "net/tls/context.h"
#include "net/tls/options.h"

/* For tls_source_new. Checks the options, which are borrowed. */
MUST_CHECK
enum status tls_server_recipe(const struct tls_options *options, struct tls_recipe *ret_recipe,
                              struct error *error);

#endif
