/*
 * CRC-32C (Castagnoli), the checksum of all stored data: with the processor's instruction where it
 * has one (SSE4.2, ARMv8 CRC), with tables elsewhere. Both give the same value.
 */
#ifndef VIGIL_BASE_CRC32C_H
#define VIGIL_BASE_CRC32C_H

#include "base/slice.h"

/* Extends the checksum crc of preceding bytes by `bytes`. Begin with 0. Any thread. */
uint32_t crc32c(uint32_t crc, struct slice bytes);

/* The two implementations, so that a test can compare them. */
uint32_t crc32c_portable(uint32_t crc, struct slice bytes);
bool crc32c_has_hardware(void);
uint32_t crc32c_hardware(uint32_t crc,
                         struct slice bytes); /* only if the processor has the instruction */

#endif
