/* IP addresses as Go's net/netip reads and writes them. */
#ifndef VIGIL_CODEC_GO_ADDRESS_H
#define VIGIL_CODEC_GO_ADDRESS_H

#include "base/slice.h"

struct go_address {
    uint8_t bytes[16]; /* an IPv4 address has the first four */
    bool is_v6;
    bool has_zone;
};

/* Why a text is not an address, in Go's words. */
struct go_address_fault {
    const char *why;
    struct slice at; /* the rest of the text from the fault on; empty: not given */
};

MUST_CHECK
bool go_address_read(struct slice text, struct go_address *ret_address,
                     struct go_address_fault *ret_fault);

/* "::ffff:1.2.3.4" */
bool go_address_is_mapped(const struct go_address *address);

enum { GO_ADDRESS_BYTES = 40 };

/* The canonical form, without a zone, and a zero byte behind it; returns its length. */
size_t go_address_write(const struct go_address *address, char to[GO_ADDRESS_BYTES]);

#endif
