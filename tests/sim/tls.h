/*
 * TLS in the simulation: certificates, and random numbers of OpenSSL from the seed, so that every
 * handshake has the same bytes in every run. OpenSSL itself is the real one: the server and the
 * clients only pass it bytes in memory (net/tls/bytes.h), so nothing of it has to be replaced.
 *
 * Its clock is not simulated: it decides whether a certificate is valid, and those made here are.
 */
#ifndef VIGIL_TESTS_SIM_TLS_H
#define VIGIL_TESTS_SIM_TLS_H

#include "net/tls/options.h"

#include <stdint.h>

/* Creates the certificates, which sim_tls_end removes. */
void sim_tls_begin(uint64_t seed);
void sim_tls_end(void);

/* An endpoint, or several with commas between them, with the scheme that is right: https if TLS is
 * used. Valid until the next call. */
const char *sim_tls_endpoint(const char *endpoints);
struct tls_options sim_tls_options(void); /* options of the server */
const char *sim_tls_ca_file(void);        /* for clients; NULL: there is no TLS */

#endif
