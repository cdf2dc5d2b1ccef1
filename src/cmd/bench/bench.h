/*
 * `vigil bench`: a load generator that costs so little that the server is what is measured.
 *
 *     vigil bench put|get|list|load|watch|catchup|idle|ready|sink [--flag value ...]
 *
 * argv[0] is the name to show in messages. Returns the exit status: 0, 1 when a call failed or the
 * load could not run, 2 for flags that make no sense.
 */
#ifndef VIGIL_CMD_BENCH_BENCH_H
#define VIGIL_CMD_BENCH_BENCH_H

int bench_main(int argc, char **argv);

#endif
