// cuda_bench: captures and graphs.

#include "drivers/cuda/cuda_bench.h"

namespace keel::cuda::benchmarks {
namespace {

// Records `count` kernels, both ways.
Code CaptureDirect(Bench& b, std::size_t count, void** graph) {
  void* const stream = Pointer(b.recording.value);
  Code code = b.cu.capture_begin(stream, static_cast<int>(hal::CaptureMode::kThreadLocal));
  for (std::size_t i = 0; i < count; ++i) code = Both(code, b.Launch(stream));
  return Both(code, b.cu.capture_end(stream, graph));
}
Result<hal::GraphHandle> CaptureDevice(Bench& b, std::size_t count) {
  KEEL_TRY(b.device->BeginCapture(b.recording, hal::CaptureMode::kThreadLocal));
  for (std::size_t i = 0; i < count; ++i) {
    KEEL_TRY(b.device->LaunchKernel(b.recording, b.launch()));
  }
  return b.device->EndCapture(b.recording);
}

void Captures() {
  for (const std::size_t count : {std::size_t{0}, kNodes}) {
    Operation(
        count == 0 ? "BeginCapture + EndCapture" : "Capture of 100 kernels",
        [count](Bench& b) {
          void* graph = nullptr;
          const Code code = CaptureDirect(b, count, &graph);
          return Both(code, b.cu.graph_destroy(graph));
        },
        [count](Bench& b) -> Status {
          KEEL_ASSIGN(const hal::GraphHandle graph, CaptureDevice(b, count));
          return b.device->DestroyGraph(graph);
        },
        {.calls = static_cast<int>(count) + 3});
  }
  Operation(
      "Capture + UpdateExec, 100 kernels",
      [](Bench& b) {
        void* graph = nullptr;
        abi::UpdateResultInfo info;
        Code code = CaptureDirect(b, kNodes, &graph);
        code = Both(code, b.raw.exec_update(Pointer(b.exec.value), graph, &info));
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, CaptureDevice(b, kNodes));
        KEEL_TRY(b.device->UpdateExec(b.exec, graph).status());
        return b.device->DestroyGraph(graph);
      },
      {.calls = static_cast<int>(kNodes) + 4});
  // A stream that captures from the first look at it to the program's end.
  static constexpr auto kOpen = [](Bench& b) {
    static const hal::StreamHandle open = [&] {
      const hal::StreamHandle stream = Must(b.device->CreateStream({}), "a stream");
      if (!b.device->BeginCapture(stream, hal::CaptureMode::kRelaxed).ok() ||
          !b.device->LaunchKernel(stream, b.launch()).ok()) {
        std::exit(1);
      }
      return stream;
    }();
    return open;
  };
  Operation(
      "GetCaptureState",
      [](Bench& b) {
        int state = 0;
        return b.raw.capture_info(Pointer(kOpen(b).value), &state, nullptr, nullptr, nullptr,
                                  nullptr);
      },
      [](Bench& b) { return b.device->GetCaptureState(kOpen(b)); });
  Operation(
      "GetCaptureFrontier",
      [](Bench& b) {
        int state = 0;
        void* const* nodes = nullptr;
        std::size_t count = 0;
        return b.raw.capture_info(Pointer(kOpen(b).value), &state, nullptr, nullptr, &nodes,
                                  &count);
      },
      [](Bench& b) { return b.device->GetCaptureFrontier(kOpen(b)); });
}

Code ListDirect(Bench& b) {
  std::size_t count = 0;
  void* const graph = Pointer(b.graph.value);
  Code code = b.cu.graph_nodes(graph, nullptr, &count);
  std::vector<void*> nodes(count);
  code = Both(code, b.cu.graph_nodes(graph, nodes.data(), &count));
  for (void* node : nodes) {
    int type = 0;
    code = Both(code, b.raw.node_type(node, &type));
    std::size_t before = 0;
    code = Both(code, b.cu.node_dependencies(node, nullptr, &before));
    std::vector<void*> dependencies(before);
    if (before > 0) {
      code = Both(code, b.cu.node_dependencies(node, dependencies.data(), &before));
    }
  }
  return code;
}

void Graphs() {
  Operation(
      "CreateGraph + DestroyGraph",
      [](Bench& b) {
        void* graph = nullptr;
        const Code code = b.cu.graph_create(&graph, 0);
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, b.device->CreateGraph());
        return b.device->DestroyGraph(graph);
      },
      {.calls = 2});
  Operation(
      "AddNode, 100 kernels",
      [](Bench& b) {
        void* graph = nullptr;
        Code code = b.cu.graph_create(&graph, 0);
        const abi::KernelNodeParams params = b.params();
        for (std::size_t i = 0; i < kNodes; ++i) {
          void* node = nullptr;
          code = Both(code, b.raw.add_kernel(&node, graph, nullptr, 0, &params));
        }
        return Both(code, b.cu.graph_destroy(graph));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::GraphHandle graph, b.device->CreateGraph());
        for (std::size_t i = 0; i < kNodes; ++i) {
          KEEL_TRY(b.device->AddNode(graph, {}, b.launch()).status());
        }
        return b.device->DestroyGraph(graph);
      },
      {.calls = 102});
  Operation("GetNodes, 100 kernels", ListDirect,
            [](Bench& b) { return b.device->GetNodes(b.graph); },
            {.calls = 2 + 3 * static_cast<int>(kNodes)});
  Operation(
      "Instantiate + DestroyExec, 100 kernels",
      [](Bench& b) {
        void* exec = nullptr;
        Code code = b.cu.instantiate(&exec, Pointer(b.graph.value), 0);
        if (code == vendor::kSuccess) code = b.cu.upload(exec, Pointer(b.stream.value));
        return Both(code, b.cu.exec_destroy(exec));
      },
      [](Bench& b) -> Status {
        KEEL_ASSIGN(const hal::ExecHandle exec, b.device->Instantiate(b.graph));
        return b.device->DestroyExec(exec);
      },
      {.calls = 3});
  Operation(
      "UpdateExec, 100 kernels",
      [](Bench& b) {
        abi::UpdateResultInfo info;
        return b.raw.exec_update(Pointer(b.exec.value), Pointer(b.graph.value), &info);
      },
      [](Bench& b) { return b.device->UpdateExec(b.exec, b.graph); });
  Operation(
      "SetNodeParams",
      [](Bench& b) {
        const abi::KernelNodeParams params = b.params();
        return b.raw.set_kernel(Pointer(b.exec.value), Pointer(b.nodes[50].value), &params);
      },
      [](Bench& b) { return b.device->SetNodeParams(b.exec, b.nodes[50], b.launch()); });
  Operation(
      "LaunchGraph, 100 kernels",
      [](Bench& b) { return b.cu.graph_launch(Pointer(b.exec.value), Pointer(b.stream.value)); },
      [](Bench& b) { return b.device->LaunchGraph(b.exec, b.stream); }, {.clock = Clock::kQueue});
  Operation(
      "LaunchGraph, 100 kernels, wait",
      [](Bench& b) {
        const Code code = b.cu.graph_launch(Pointer(b.exec.value), Pointer(b.stream.value));
        return Both(code, b.raw.stream_synchronize(Pointer(b.stream.value)));
      },
      [](Bench& b) -> Status {
        KEEL_TRY(b.device->LaunchGraph(b.exec, b.stream));
        return b.device->SynchronizeStream(b.stream, Deadline::Never());
      },
      {.calls = 2});
  Operation(
      "100 kernels without a graph, wait",
      [](Bench& b) {
        Code code = vendor::kSuccess;
        for (std::size_t i = 0; i < kNodes; ++i)
          code = Both(code, b.Launch(Pointer(b.stream.value)));
        return Both(code, b.raw.stream_synchronize(Pointer(b.stream.value)));
      },
      [](Bench& b) -> Status {
        for (std::size_t i = 0; i < kNodes; ++i) {
          KEEL_TRY(b.device->LaunchKernel(b.stream, b.launch()));
        }
        return b.device->SynchronizeStream(b.stream, Deadline::Never());
      },
      {.calls = 101});
}

}  // namespace

void AddGraphs() {
  Graphs();
  Captures();
}

}  // namespace keel::cuda::benchmarks
