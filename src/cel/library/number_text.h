/*
 * Numbers as Go's golang.org/x/text/message writes them for American English. A precision has its
 * quirks: %f has at most 255 zeros at the end, and ignores the higher bits of a large precision;
 * the precision of %e is the width of the text.
 */
#ifndef VIGIL_CEL_LIBRARY_NUMBER_TEXT_H
#define VIGIL_CEL_LIBRARY_NUMBER_TEXT_H

#include "cel/library/writer.h"

/* "1,234.500000". The precision is not negative. */
void cel_write_fixed(struct cel_writer *to, double number, int64_t precision);
/* "1.234500×10⁰³" */
void cel_write_scientific(struct cel_writer *to, double number, int64_t precision);

#endif
