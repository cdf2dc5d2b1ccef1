/*
 * IP addresses and networks: ip("10.0.0.1").family(), cidr("10.0.0.0/8").containsIP("10.1.1.1") and
 * others. Zones and IPv4 addresses within IPv6 addresses are refused.
 */
#ifndef VIGIL_CEL_LIBRARY_ADDRESS_H
#define VIGIL_CEL_LIBRARY_ADDRESS_H

#include "cel/library/library.h"

extern const struct cel_library cel_addresses;

#endif
