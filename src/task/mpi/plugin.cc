// libkeel-mpi.so: the table over the MPI that it is linked with.
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstring>

#include "task/mpi/table.h"

namespace {

MPI_Comm g_ranks = MPI_COMM_NULL;

int Fail(KeelMpiError* error, const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  std::snprintf(error->text, sizeof(error->text), "%s: %s", call, text);
  return 1;
}

int Check(int code, const char* call, KeelMpiError* error) {
  return code == MPI_SUCCESS ? 0 : Fail(error, call, code);
}

// Of some MPIs the handles are pointers.
// NOLINTBEGIN(bugprone-sizeof-expression)
template <class Handle>
void Put(KeelMpiHandle* to, Handle from) {
  static_assert(sizeof(Handle) <= sizeof(to->bytes));
  std::memcpy(to->bytes, static_cast<const void*>(&from), sizeof(Handle));
}

template <class Handle>
Handle Get(const KeelMpiHandle* from) {
  Handle handle;
  std::memcpy(static_cast<void*>(&handle), from->bytes, sizeof(Handle));
  return handle;
}
// NOLINTEND(bugprone-sizeof-expression)

int TooLarge(std::size_t size, KeelMpiError* error) {
  if (size <= INT_MAX) return 0;
  std::snprintf(error->text, sizeof(error->text), "a message of %zu bytes is too large", size);
  return 1;
}

int Start(int* rank, int* ranks, KeelMpiError* error) {
  int there = 0;
  MPI_Initialized(&there);
  if (there != 0) {
    // Who has initialised it finalises it, which waits for the ranks; and they wait for a word that
    // comes when the process exits, after that.
    std::snprintf(error->text, sizeof(error->text), "%s",
                  "the program has initialised MPI itself: leave that to Keel");
    return kKeelMpiTaken;
  }
  int level = MPI_THREAD_SINGLE;
  if (Check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread",
            error) != 0) {
    return 1;
  }
  if (level < MPI_THREAD_FUNNELED) {
    std::snprintf(error->text, sizeof(error->text), "%s",
                  "this MPI allows no other threads in a program: MPI_THREAD_FUNNELED is needed");
    return 1;
  }
  // Messages of others cannot be taken for Keel's, and an error is returned and not fatal.
  if (Check(MPI_Comm_dup(MPI_COMM_WORLD, &g_ranks), "MPI_Comm_dup", error) != 0) return 1;
  MPI_Comm_set_errhandler(g_ranks, MPI_ERRORS_RETURN);
  MPI_Comm_rank(g_ranks, rank);
  MPI_Comm_size(g_ranks, ranks);
  return 0;
}

void Finish() { MPI_Finalize(); }

void Abort(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

int Send(const void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
         KeelMpiError* error) {
  if (TooLarge(size, error) != 0) return 1;
  MPI_Request handle = MPI_REQUEST_NULL;
  const int code = MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, rank, tag, g_ranks, &handle);
  Put(request, handle);
  return Check(code, "MPI_Isend", error);
}

int Receive(void* bytes, std::size_t size, int rank, int tag, KeelMpiHandle* request,
            KeelMpiError* error) {
  if (TooLarge(size, error) != 0) return 1;
  MPI_Request handle = MPI_REQUEST_NULL;
  const int code = MPI_Irecv(bytes, static_cast<int>(size), MPI_BYTE, rank, tag, g_ranks, &handle);
  Put(request, handle);
  return Check(code, "MPI_Irecv", error);
}

int Peek(int* found, KeelMpiError* error) {
  return Check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, g_ranks, found, MPI_STATUS_IGNORE),
               "MPI_Iprobe", error);
}

int Match(int rank, int tag, int* found, std::size_t* size, KeelMpiHandle* message,
          KeelMpiError* error) {
  MPI_Message handle = MPI_MESSAGE_NULL;
  MPI_Status status;
  if (Check(MPI_Improbe(rank, tag, g_ranks, found, &handle, &status), "MPI_Improbe", error) != 0) {
    return 1;
  }
  if (*found == 0) return 0;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *size = static_cast<std::size_t>(count);
  Put(message, handle);
  return 0;
}

int ReceiveMatched(void* bytes, std::size_t size, KeelMpiHandle* message, KeelMpiHandle* request,
                   KeelMpiError* error) {
  if (TooLarge(size, error) != 0) return 1;
  auto handle = Get<MPI_Message>(message);
  MPI_Request begun = MPI_REQUEST_NULL;
  const int code = MPI_Imrecv(bytes, static_cast<int>(size), MPI_BYTE, &handle, &begun);
  Put(request, begun);
  return Check(code, "MPI_Imrecv", error);
}

int Test(KeelMpiHandle* request, int* done, std::size_t* size, KeelMpiError* error) {
  auto handle = Get<MPI_Request>(request);
  MPI_Status status;
  const int code = MPI_Test(&handle, done, &status);
  Put(request, handle);
  if (code != MPI_SUCCESS) return Fail(error, "MPI_Test", code);
  if (*done == 0) return 0;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *size = count == MPI_UNDEFINED ? 0 : static_cast<std::size_t>(count);
  return 0;
}

constexpr KeelMpiTable kTable = {
    .version = kKeelMpiVersion,
    .size = sizeof(KeelMpiTable),
    .start = Start,
    .finish = Finish,
    .abort = Abort,
    .send = Send,
    .receive = Receive,
    .peek = Peek,
    .match = Match,
    .receive_matched = ReceiveMatched,
    .test = Test,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const KeelMpiTable* keel_mpi_table() {
  return &kTable;
}
