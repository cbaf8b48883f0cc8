"""Writes the arrays of this folder: layouts that numpy can write and a reader may trip over."""
import os
import zipfile

import numpy as np
from numpy.lib import format as F
d=os.path.dirname(os.path.abspath(__file__))+'/'
s=lambda n,a:np.save(d+n,a)
a=np.arange(24).reshape(2,3,4)
s('f32_c.npy',a.astype('<f4'))
s('f32_fortran_3d.npy',np.asfortranarray(a.astype('<f4')))
s('f64_big_fortran.npy',np.asfortranarray(a.astype('>f8')))
s('f32_big.npy',a.astype('>f4'))
s('i16_big.npy',(a-12).astype('>i2'))
s('u64_big_fortran.npy',np.asfortranarray(a[0].astype('>u8')))
s('i64_default.npy',np.array([-2**31,-1,0,2**31-1]))
s('i64_too_large_fortran.npy',np.asfortranarray(np.array([[0,1,2],[3,-2**31-1,2**40]])))
s('u64_too_large.npy',np.array([1,2**64-1],dtype='u8'))
s('u8.npy',np.array([0,1,255],'u1')); s('i8.npy',np.array([-128,0,127],'i1')); s('u16.npy',np.array([0,65535],'u2')); s('u32.npy',np.array([0,2**32-1],'u4'))
s('f16.npy',np.array([0,-0.0,1.5,6e-8,65504,np.inf,-np.inf,np.nan],'f2'))
s('f64_overflow.npy',np.array([1e300,-1e300,np.inf,1e-300,1.0]))
s('bool_fortran.npy',np.asfortranarray(np.array([[True,False,True],[False,False,True]])))
s('zero_d.npy',np.float32(2.5))
s('zero_d_f64.npy',np.array(2.5))
s('empty.npy',np.zeros((3,0,2),'f4'))
s('empty_fortran.npy',np.asfortranarray(np.zeros((3,0,2),'f8')))
for v in (2,3):
    with open(d+f'version{v}.npy','wb') as f: F.write_array(f,a[0].astype('f4'),version=(v,0))
s('complex.npy',np.array([1j])); s('string.npy',np.array(['ab'])); s('structured.npy',np.zeros(2,[('x','f4'),('y','i4')]))
np.save(d+'object.npy',np.array([None,{}],dtype=object),allow_pickle=True)
s('datetime.npy',np.array(['2020-01-01'],'M8[D]')); s('longdouble.npy',np.array([1],np.longdouble)); s('bytes.npy',np.array([b'ab']))
np.savez(d+'stored.npz',w1=a.astype('f4'),w2=np.asfortranarray(a[0].astype('f8')),mask=a[0]>5)
np.savez_compressed(d+'compressed.npz',w1=a.astype('f4'),zeros=np.zeros((100,100)))
np.savez(d+'single.npz',np.arange(3,dtype='i4'))
with zipfile.ZipFile(d+'empty.npz','w'): pass
