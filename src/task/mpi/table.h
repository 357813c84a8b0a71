// What Keel calls of MPI, as a table of functions: the whole of libkeel-mpi.so (plugin.cc), which
// alone is linked with an MPI. libkeel.so loads it when it is needed (port.h), so that the same
// library runs where there is none.
//
// All functions are for one thread, that which called `start`. Those that return int return 0, or
// something else with the reason in `error`. Nothing waits but start and finish.
//
// C types only: the two libraries need not be built by the same compiler, only from one version.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct KeelMpiError {
  char text[512];
};

// Room for a handle of any MPI: a pointer, or a number.
struct KeelMpiHandle {
  alignas(8) unsigned char bytes[8];
};

struct KeelMpiTable {
  std::uint32_t version;  // kKeelMpiVersion
  std::uint32_t size;     // of this struct

  // Initialises MPI, and makes a communicator of Keel's own with all ranks: waits until all of them
  // have come here. kKeelMpiTaken: somebody else has initialised it.
  int (*start)(int* rank, int* ranks, KeelMpiError* error);
  // Finalises it: waits until all ranks do.
  void (*finish)();
  // Ends all ranks, this one included.
  void (*abort)(int code);

  // The bytes stay as they are until `test` says that it is done.
  int (*send)(const void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
              KeelMpiError* error);
  int (*receive)(void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
                 KeelMpiError* error);
  // Whether any message is there.
  int (*peek)(int* found, KeelMpiError* error);
  // Takes the next one of a rank and a tag, if it is there; its size, and the handle to get it by.
  int (*match)(int rank, int tag, int* found, std::size_t* size, KeelMpiHandle* message,
               KeelMpiError* error);
  int (*receive_matched)(void* bytes, std::size_t size, KeelMpiHandle* message,
                         KeelMpiHandle* request, KeelMpiError* error);
  // `size`: what a receive got.
  int (*test)(KeelMpiHandle* request, int* done, std::size_t* size, KeelMpiError* error);
};

}  // extern "C"

inline constexpr std::uint32_t kKeelMpiVersion = 1;
inline constexpr int kKeelMpiTaken = 2;
// The one symbol of the library: `const KeelMpiTable* keel_mpi_table()`.
inline constexpr const char* kKeelMpiSymbol = "keel_mpi_table";
