/*
 * CRC-32C (Castagnoli), the checksum of everything we store: by the processor's own instruction
 * where it has one (SSE4.2, ARMv8 CRC), by tables elsewhere. All ways give the same value.
 */
#ifndef VIGIL_BASE_CRC32C_H
#define VIGIL_BASE_CRC32C_H

#include "base/slice.h"

/* The checksum of what crc stood for, followed by bytes. Begin with 0. Any thread. */
uint32_t crc32c(uint32_t crc, struct slice bytes);

/* The two ways by themselves, so that a test can hold one against the other. */
uint32_t crc32c_portable(uint32_t crc, struct slice bytes);
bool crc32c_has_hardware(void);
uint32_t crc32c_hardware(uint32_t crc, struct slice bytes); /* only if there is hardware */

#endif
