/*
 * A range of addresses of services, such as 10.0.0.0/24 or fd00::/112, and its addresses by number.
 * As in Kubernetes the first address, which is the network's, is never used, nor the last one of
 * IPv4, which is the broadcast address.
 */
#ifndef VIGIL_KUBE_POLICY_RANGE_H
#define VIGIL_KUBE_POLICY_RANGE_H

#include "base/error.h"
#include "base/slice.h"

enum { KUBE_ADDRESS_BYTES = 16, KUBE_ADDRESS_TEXT_BYTES = 48 };

struct kube_address {
    bool is_v6;
    uint8_t bytes[KUBE_ADDRESS_BYTES]; /* 4 of them for IPv4 */
};

struct kube_range {
    struct kube_address base; /* without the bits of hosts */
    unsigned prefix_bits;
    uint64_t size; /* usable addresses, numbered from 0; at most 2^32 */
};

/* ST_INVALID: it is not "ADDRESS/BITS", or has no usable address. */
MUST_CHECK
enum status kube_range_parse(struct slice text, struct kube_range *ret_range, struct error *error);

struct kube_address kube_range_at(const struct kube_range *range, uint64_t number);
/* False: the address is not a usable one of the range. */
bool kube_range_has(const struct kube_range *range, const struct kube_address *address);

/* The canonical form, which is also that of Kubernetes' IPAddress objects. */
void kube_address_format(const struct kube_address *address, char text[KUBE_ADDRESS_TEXT_BYTES]);
bool kube_address_parse(struct slice text, struct kube_address *ret_address);
/* "10.0.0.0/24" in its canonical form. */
enum { KUBE_RANGE_TEXT_BYTES = KUBE_ADDRESS_TEXT_BYTES + 4 };
void kube_range_format(const struct kube_range *range, char text[KUBE_RANGE_TEXT_BYTES]);

#endif
