/* SPDX-License-Identifier: MIT */
/*
 * sum: a 64-bit checksum against accidental damage (FNV-1a).
 *
 * Each byte changes the sum reversibly, so two inputs of equal length that
 * differ in one byte never have the same sum. It does not protect against
 * attackers.
 */
#ifndef STORE_SUM_H
#define STORE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* The initial sum. */
#define SUM_START UINT64_C(0xcbf29ce484222325)

/* Extend `sum` by these bytes. */
uint64_t sum_add(uint64_t sum, const void *bytes, size_t len);

/* Extend it by a number: its lowest `len` bytes, the lowest first. */
uint64_t sum_add_number(uint64_t sum, uint64_t number, size_t len);

#endif /* STORE_SUM_H */
