/*
 * The faults of a plan: an actor that causes them at random times, to the network and to the
 * machines (supervisor.h).
 */
#ifndef VIGIL_TESTS_SIM_FAULTS_H
#define VIGIL_TESTS_SIM_FAULTS_H

#include "plan.h"
#include "simulated/sim.h"

struct machine;

/* Starts the server and keeps it running. Inside an actor; returns when the server runs. */
void faults_begin(const struct plan *plan, struct sim *sim, struct machine *machine);
/* The same for the server in front of it. */
void faults_begin_front(struct machine *machine);
/* The same for a replica behind a tier. */
void faults_begin_replica(struct machine *machine);
/* Faults begin. */
void faults_start(void);
/* Everything is repaired; returns when the servers run. Inside an actor. */
void faults_stop(void);
/* A bit has changed on a disk: requests may fail. */
bool faults_have_rotted(void);
/* On the disk of the first server, which has no other copy. */
bool faults_have_rotted_behind(void);
/* The server has noticed it and does not start any more. */
bool faults_have_damaged(void);
/* The first server loses its data: it begins another history. Inside an actor. */
void faults_empty(void);
/* The servers are stopped, and not started again. Inside an actor. */
void faults_end(void);

#endif
