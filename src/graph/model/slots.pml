/* The protocol of slots and timelines (src/graph/executable_state.cc, slot.cc, timeline.h), small
 * enough to look at every interleaving: callers that share slots, streams that run their steps, a
 * table that the host rewrites and the device reads, outputs that are held. With BY_VALUE, each
 * launch has what the table says as a value of its own, and the table is the host's alone. A step's
 * output is written in parts, in any order, each of which has a mark; a step is seen when all are.
 * With GIVEN_BACK, the memory of the slots goes once, at any time when that may be, by an end of the
 * executable or to others, and whoever comes later makes it again.
 *
 * What holds, in every interleaving:
 *  - a slot is in one step at a time, on whatever streams its steps were launched;
 *  - a step reads what its caller bound;
 *  - a held output is not overwritten;
 *  - the memory of the slots is there while a step runs or an output is held;
 *  - nobody waits for ever (there is no deadlock).
 *
 * check_model.py checks it, and that each rule is needed: with one of these defined, the model fails.
 *   WITHOUT_STREAM_RULE   a slot is taken while its step runs on another stream
 *   WITHOUT_TABLE_RULE    the table is rewritten without waiting for the slot's last step (no rule
 *                         with BY_VALUE)
 *   WITHOUT_HOLD_RULE     a slot is taken while its output is held
 *   MARK_BEFORE_END       the device marks the end of a part before it has written that
 *   ONE_MARK_SEEN         a step is seen when the first of its marks is
 *   LEASE_LOST            a step that fails does not give its slot back
 *   WITHOUT_END_RULE      the memory is given back without waiting for the steps that run (this and
 *                         the next: rules of GIVEN_BACK)
 *   WITHOUT_KEPT_RULE     the memory is given back while an output is held
 */
#define SLOTS 2
#define STREAMS 2
#ifdef GIVEN_BACK
#define STEPS 1 /* of each caller: the memory goes before, between or after them */
#else
#define STEPS 2
#endif

bool leased[SLOTS];
byte held[SLOTS];
byte launched[SLOTS];    /* marks that were asked for */
byte one_part[SLOTS];    /* marks that the device has written, of the one part */
byte other_part[SLOTS];  /* and of the other */
byte last_stream[SLOTS]; /* 1 and up; 0: never used */
byte table[SLOTS];
byte output[SLOTS];       /* its one part */
byte rest[SLOTS];         /* and the other */
byte running[SLOTS];
#ifdef GIVEN_BACK
bool mapped = true; /* the memory of all slots */
#else
#define mapped true
#endif

chan queue[STREAMS] = [SLOTS + 1] of {byte, byte}; /* slot, what its table says */

#ifdef ONE_MARK_SEEN
#define seen(s, number) (one_part[s] >= number || other_part[s] >= number)
#else
#define seen(s, number) (one_part[s] >= number && other_part[s] >= number)
#endif
#define idle(s) seen(s, launched[s])
#define holds(s, value) (output[s] == value && rest[s] == value)

#ifdef BY_VALUE
#define bound(s, value) (true)
#define rewritable(s) (true)
#else
#define bound(s, value) (table[s] == value)
#ifdef WITHOUT_TABLE_RULE
#define rewritable(s) (true)
#else
#define rewritable(s) idle(s)
#endif
#endif
#ifdef WITHOUT_STREAM_RULE
#define in_order(s, stream) (true)
#else
#define in_order(s, stream) (last_stream[s] == stream + 1)
#endif
#ifdef WITHOUT_HOLD_RULE
#define let_go(s) (true)
#else
#define let_go(s) (held[s] == 0)
#endif
#define free(s, stream) (!leased[s] && let_go(s) && (idle(s) || in_order(s, stream)))

#ifdef WITHOUT_END_RULE
#define done(s) (true)
#else
#define done(s) idle(s)
#endif
#ifdef WITHOUT_KEPT_RULE
#define kept(s) (false)
#else
#define kept(s) (held[s] != 0)
#endif
#define unused(s) (!leased[s] && !kept(s) && done(s))

/* The end of a part, and of the step if it is the last one. */
inline EndOf(part, marked, left) {
#ifdef MARK_BEFORE_END
  marked++;
  part = value;
  running[slot] = left
#else
  part = value;
  assert(mapped && bound(slot, value));
  atomic {
    running[slot] = left;
    marked++
  }
#endif
}

proctype Stream(byte number) {
  byte slot, value;
end:
  do
  :: queue[number]?slot, value ->
     running[slot]++;
     assert(running[slot] == 1);
     assert(mapped && bound(slot, value));
     if
     :: EndOf(output[slot], one_part[slot], 1);
        EndOf(rest[slot], other_part[slot], 0)
     :: EndOf(rest[slot], other_part[slot], 1);
        EndOf(output[slot], one_part[slot], 0)
     fi
  od
}

proctype Caller(byte number; byte stream) {
  byte slot, value, step, mark;
  do
  :: step == STEPS -> break
  :: else ->
     /* Acquire: under the lock, and waits while no slot is free. */
     atomic {
       if
       :: free(0, stream) -> slot = 0
       :: free(1, stream) -> slot = 1
       fi;
       leased[slot] = true;
       step++;
#ifdef GIVEN_BACK
       mapped = true; /* made again, if it was given back */
#endif
       /* A binding that moved, or did not. */
       if
       :: value = 1 + number
       :: value = table[slot]
       fi
     };
     if
     :: value != table[slot] ->
        rewritable(slot);
        table[slot] = value
     :: else
     fi;
     if
     :: true -> /* the launch succeeds */
        queue[stream]!slot, value;
        atomic {
          last_stream[slot] = stream + 1;
          launched[slot]++;
          mark = launched[slot]
        };
        if
        :: atomic { held[slot]++; leased[slot] = false };
           seen(slot, mark);
           assert(mapped && holds(slot, value));
           atomic {
             assert(mapped && holds(slot, value)); /* read again, later */
             held[slot]--
           }
        :: leased[slot] = false
        fi
     :: true -> /* or fails */
#ifndef LEASE_LOST
        leased[slot] = false
#else
        skip
#endif
     fi
  od
}

#ifdef GIVEN_BACK
proctype Owner() {
  atomic {
    unused(0) && unused(1) -> mapped = false
  }
}
#endif

init {
  atomic {
    run Stream(0);
    run Stream(1);
    run Caller(0, 0);
    run Caller(1, 1);
#ifdef GIVEN_BACK
    run Owner()
#endif
  }
}
