namespace c10::cuda {
class CUDAStream {
 public:
  operator cudaStream_t() const; operator Stream() const; cudaStream_t stream() const; DeviceIndex device_index() const;
  Device device() const; StreamId id() const; void synchronize() const; bool query() const; Stream unwrap() const;
  bool operator==(const CUDAStream&) const; bool operator!=(const CUDAStream&) const;
};
CUDAStream getCurrentCUDAStream(DeviceIndex = -1); CUDAStream getDefaultCUDAStream(DeviceIndex = -1);
CUDAStream getStreamFromPool(const bool = false, DeviceIndex = -1);
  CUDAStream getStreamFromPool(const int, DeviceIndex = -1);
void setCurrentCUDAStream(CUDAStream);
DeviceIndex device_count() noexcept; DeviceIndex current_device(); void set_device(DeviceIndex);
  void device_synchronize();
struct CUDAGuard {
  explicit CUDAGuard(DeviceIndex); explicit CUDAGuard(Device); void set_device(Device); void set_index(DeviceIndex);
  Device original_device() const; Device current_device() const;
};
struct OptionalCUDAGuard { explicit OptionalCUDAGuard(); explicit OptionalCUDAGuard(::std::optional<Device>);
  explicit OptionalCUDAGuard(::std::optional<DeviceIndex>); void set_device(Device); void set_index(DeviceIndex); };
struct CUDAStreamGuard { explicit CUDAStreamGuard(Stream); };
struct CUDAErrorLogCapture { CUDAErrorLogCapture(); ~CUDAErrorLogCapture(); };
template <typename... A> void c10_cuda_check_implementation(A...);
}
namespace at::cuda {
using namespace c10::cuda;
cudaDeviceProp* getCurrentDeviceProperties(); cudaDeviceProp* getDeviceProperties(c10::DeviceIndex); int warp_size();
bool is_available();
}
