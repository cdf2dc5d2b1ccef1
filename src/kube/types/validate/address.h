/*
 * IP addresses and blocks of them as Kubernetes' older fields accept them: numbers of an IPv4
 * address may have leading zeros, which stricter rules then refuse.
 */
#ifndef VIGIL_KUBE_TYPES_VALIDATE_ADDRESS_H
#define VIGIL_KUBE_TYPES_VALIDATE_ADDRESS_H

#include "base/slice.h"

struct address {
    uint8_t bytes[16]; /* an IPv4 address in its first four */
    uint8_t len;       /* 4 or 16 */
    bool padded;       /* a number had leading zeros */
    bool mapped;       /* an IPv4 address in the form of an IPv6 address */
};

struct address_block {
    struct address first;
    unsigned bits; /* length of the prefix */
    bool padded;   /* they had leading zeros */
};

/* False: it is invalid. */
bool address_read(struct slice text, struct address *ret_address);
/* "10.0.0.0/8" */
bool address_block_read(struct slice text, struct address_block *ret_block);

/* Whether all bits after the prefix are zero. */
bool address_block_is_masked(const struct address_block *block);
bool address_block_has(const struct address_block *block, const struct address *address);

enum address_range {
    ADDRESS_ORDINARY,
    ADDRESS_UNSPECIFIED,
    ADDRESS_LOOPBACK,
    ADDRESS_LINK_LOCAL,
    ADDRESS_LINK_LOCAL_MULTICAST,
};
enum address_range address_range(const struct address *address);

#endif
